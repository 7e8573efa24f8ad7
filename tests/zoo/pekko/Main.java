package pekkoprogram;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.apache.pekko.actor.typed.ActorRef;
import org.apache.pekko.actor.typed.ActorSystem;
import org.apache.pekko.actor.typed.Behavior;
import org.apache.pekko.actor.typed.javadsl.AbstractBehavior;
import org.apache.pekko.actor.typed.javadsl.ActorContext;
import org.apache.pekko.actor.typed.javadsl.AskPattern;
import org.apache.pekko.actor.typed.javadsl.Behaviors;
import org.apache.pekko.actor.typed.javadsl.Receive;
import zoo.Meter;
import zoo.Zoo;

/** Pekko: accounts are actors of a bank, which is an actor; deposits are asked for, and the balances they answer with checked. */
public class Main {
    private static final int ACCOUNTS = 50;
    private static final int DEPOSITS = 1000;
    private static final Meter DEPOSITING = new Meter("deposit");

    /** What the bank is told. */
    record Deposit(int account, int cents, ActorRef<Balance> replyTo) {}

    /** What it answers. */
    record Balance(int account, long cents) {}

    static class Bank extends AbstractBehavior<Deposit> {
        private final Map<Integer, ActorRef<Deposit>> accounts = new HashMap<>();

        Bank(ActorContext<Deposit> context) {
            super(context);
        }

        @Override
        public Receive<Deposit> createReceive() {
            return newReceiveBuilder().onMessage(Deposit.class, this::forward).build();
        }

        Behavior<Deposit> forward(Deposit deposit) {
            accounts.computeIfAbsent(deposit.account(), id -> getContext().spawn(Behaviors.setup(Account::new), "account" + id)).tell(deposit);
            return this;
        }
    }

    static class Account extends AbstractBehavior<Deposit> {
        private final List<Integer> deposits = new ArrayList<>();
        private long cents;

        Account(ActorContext<Deposit> context) {
            super(context);
        }

        @Override
        public Receive<Deposit> createReceive() {
            return newReceiveBuilder().onMessage(Deposit.class, this::measured).build();
        }

        private Behavior<Deposit> measured(Deposit deposit) throws Exception {
            return DEPOSITING.time(() -> deposit(deposit));
        }

        Behavior<Deposit> deposit(Deposit deposit) {
            deposits.add(deposit.cents());
            cents += deposit.cents();
            if (deposits.size() > 200) {
                deposits.sort(null);
                deposits.subList(0, 100).clear();
            }
            deposit.replyTo().tell(new Balance(deposit.account(), cents));
            return this;
        }
    }

    public static void main(String[] args) throws Exception {
        ActorSystem<Deposit> bank = ActorSystem.create(Behaviors.setup(Bank::new), "bank");
        Meter meter = new Meter("round");
        long[] balances = new long[ACCOUNTS];
        round(bank, balances);
        Zoo.ready();
        while (true) {
            meter.time(() -> round(bank, balances));
        }
    }

    static Void round(ActorSystem<Deposit> bank, long[] balances) throws Exception {
        List<CompletableFuture<Balance>> answers = new ArrayList<>();
        for (int i = 0; i < DEPOSITS; i++) {
            int account = i % ACCOUNTS;
            int cents = i;
            balances[account] += cents;
            CompletionStage<Balance> answer = AskPattern.ask(
                    bank, replyTo -> new Deposit(account, cents, replyTo), Duration.ofMinutes(2), bank.scheduler());
            answers.add(answer.toCompletableFuture());
        }
        for (int i = 0; i < DEPOSITS; i++) {
            Balance balance = answers.get(i).get();
            if (i >= DEPOSITS - ACCOUNTS) {
                Zoo.check(balance.cents() == balances[balance.account()], balance + " instead of " + balances[balance.account()]);
            }
        }
        return null;
    }
}
