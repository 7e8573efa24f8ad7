package timefold;

import ai.timefold.solver.core.api.domain.entity.PlanningEntity;
import ai.timefold.solver.core.api.domain.lookup.PlanningId;
import ai.timefold.solver.core.api.domain.solution.PlanningEntityCollectionProperty;
import ai.timefold.solver.core.api.domain.solution.PlanningScore;
import ai.timefold.solver.core.api.domain.solution.PlanningSolution;
import ai.timefold.solver.core.api.domain.solution.ProblemFactCollectionProperty;
import ai.timefold.solver.core.api.domain.valuerange.ValueRangeProvider;
import ai.timefold.solver.core.api.domain.variable.PlanningVariable;
import ai.timefold.solver.core.api.score.buildin.simple.SimpleScore;
import ai.timefold.solver.core.api.score.stream.Constraint;
import ai.timefold.solver.core.api.score.stream.ConstraintFactory;
import ai.timefold.solver.core.api.score.stream.ConstraintProvider;
import ai.timefold.solver.core.api.score.stream.Joiners;
import ai.timefold.solver.core.api.solver.SolverFactory;
import ai.timefold.solver.core.config.constructionheuristic.ConstructionHeuristicPhaseConfig;
import ai.timefold.solver.core.config.localsearch.LocalSearchPhaseConfig;
import ai.timefold.solver.core.config.solver.EnvironmentMode;
import ai.timefold.solver.core.config.solver.SolverConfig;
import ai.timefold.solver.core.config.solver.termination.TerminationConfig;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import zoo.Meter;
import zoo.Zoo;

/** Timefold: queens are put on a board, and moved so that fewer attack each other. */
public class Queens {
    private static final int SIZE = 24;
    private static final int STEPS = 60;

    /** One queen, whose row is to be found. */
    @PlanningEntity
    public static class Queen {
        @PlanningId
        public Integer column;
        @PlanningVariable
        public Integer row;

        public Queen() {}

        Queen(int column) {
            this.column = column;
        }

        Integer row() {
            return row;
        }

        int up() {
            return column + row;
        }

        int down() {
            return column - row;
        }
    }

    /** All of them. */
    @PlanningSolution
    public static class Board {
        @ValueRangeProvider
        @ProblemFactCollectionProperty
        public List<Integer> rows = new ArrayList<>();
        @PlanningEntityCollectionProperty
        public List<Queen> queens = new ArrayList<>();
        @PlanningScore
        public SimpleScore score;

        static Board empty() {
            Board board = new Board();
            for (int place = 0; place < SIZE; place++) {
                board.rows.add(place);
                board.queens.add(new Queen(place));
            }
            return board;
        }
    }

    /** What they must not share. */
    public static class Rules implements ConstraintProvider {
        @Override
        public Constraint[] defineConstraints(ConstraintFactory factory) {
            return new Constraint[] {
                apart(factory, "row", Queen::row), apart(factory, "up", Queen::up), apart(factory, "down", Queen::down),
            };
        }

        private static Constraint apart(ConstraintFactory factory, String name, Function<Queen, Integer> what) {
            return factory.forEachUniquePair(Queen.class, Joiners.equal(what)).penalize(SimpleScore.ONE).asConstraint(name);
        }
    }

    private final SolverFactory<Board> solvers = SolverFactory.create(new SolverConfig()
        .withSolutionClass(Board.class)
        .withEntityClasses(Queen.class)
        .withConstraintProviderClass(Rules.class)
        .withEnvironmentMode(EnvironmentMode.REPRODUCIBLE)
        .withPhases(
            new ConstructionHeuristicPhaseConfig(),
            new LocalSearchPhaseConfig().withTerminationConfig(new TerminationConfig().withStepCountLimit(STEPS))));

    public static void main(String[] args) throws Exception {
        Queens queens = new Queens();
        Meter steps = new Meter("step");
        int expected = queens.step();
        Zoo.ready();
        while (true) {
            Zoo.check(steps.time(queens::step) == expected, "the board has another score");
        }
    }

    int step() {
        return solvers.buildSolver().solve(Board.empty()).score.score();
    }
}
