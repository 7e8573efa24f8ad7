package jooq;

import org.jooq.DSLContext;
import org.jooq.Query;
import org.jooq.SQLDialect;
import org.jooq.impl.DSL;
import zoo.Meter;
import zoo.Zoo;

/** jOOQ without a database: statements of one dialect, parsed and rendered in others. */
public class Sql {
    private static final int ROUNDS = 3;

    private static final String[] STATEMENTS = {
        """
        select a.id, count(*) c, sum(b.price * b.amount) filter (where b.amount > 3)
        from orders a join lines b on a.id = b.order_id left join customers k on k.id = a.customer_id
        where a.created > date '2024-01-01' and k.name like 'A%'
        group by a.id having count(*) > 2 order by 2 desc limit 10 offset 5""",
        """
        with recursive t(n, s) as (select 1, 'x' union all select n + 1, s || 'y' from t where n < 20)
        select n, upper(s), case when n > 5 then 'big' when n > 2 then 'mid' else 'small' end
        from t where n in (1, 2, 3, 5, 8, 13) or exists (select 1 from u where u.n = t.n)""",
        """
        insert into stock (id, name, amount) values (1, 'a', 2), (2, 'b', 3), (3, 'c', 4)
        on conflict (id) do update set amount = stock.amount + excluded.amount""",
        """
        select rank() over (partition by d.region order by sum(d.total) desc), d.region, coalesce(d.name, 'none'),
            extract(year from d.at)
        from deals d where d.total between 10 and 1000 group by d.region, d.name, d.at""",
    };

    private final DSLContext postgres = DSL.using(SQLDialect.POSTGRES);
    private final DSLContext mysql = DSL.using(SQLDialect.MYSQL);
    private final DSLContext h2 = DSL.using(SQLDialect.H2);

    public static void main(String[] args) throws Exception {
        System.setProperty("org.jooq.no-logo", "true");
        System.setProperty("org.jooq.no-tips", "true");
        Sql sql = new Sql();
        Meter steps = new Meter("step");
        int expected = sql.step();
        Zoo.ready();
        while (true) {
            Zoo.check(steps.time(sql::step) == expected, "the statements have another length");
        }
    }

    int step() {
        int length = 0;
        for (int round = 0; round < ROUNDS; round++) {
            for (String statement : STATEMENTS) {
                Query query = postgres.parser().parseQuery(statement);
                length += mysql.renderInlined(query).length();
                length += h2.render(query).length();
                length += postgres.render(query).length();
            }
        }
        return length;
    }
}
