import java.lang.instrument.Instrumentation;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.agent.builder.ResettableClassFileTransformer;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.matcher.ElementMatchers;

/** An agent on Byte Buddy, which inlines its advice into the methods of a class that is loaded, and takes it out again. */
final class Buddy {
    static volatile long counted;
    private static ResettableClassFileTransformer transformer;

    private Buddy() {}

    /** What is inlined. */
    static final class Counting {
        private Counting() {}

        @Advice.OnMethodEnter
        static void enter() {
            Buddy.counted++;
        }
    }

    static void turn(String onOrOff, Instrumentation instrumentation) {
        if (onOrOff.equals("on")) {
            transformer = new AgentBuilder.Default()
                .disableClassFormatChanges()
                .with(AgentBuilder.RedefinitionStrategy.RETRANSFORMATION)
                .type(ElementMatchers.named("Work"))
                .transform((builder, type, loader, module, domain) ->
                    builder.visit(Advice.to(Counting.class).on(ElementMatchers.isMethod())))
                .installOn(instrumentation);
        } else if (!transformer.reset(instrumentation, AgentBuilder.RedefinitionStrategy.RETRANSFORMATION)) {
            throw new IllegalStateException("it stays");
        }
    }
}
