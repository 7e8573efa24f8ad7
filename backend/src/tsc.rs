//! The processor's time stamp counter, for the runtime classes' calls.

/// Reads the counter. Called at each event, by the C calling convention, of any thread, in any state: it touches no memory.
#[unsafe(naked)]
pub extern "C" fn read() -> u64 {
    std::arch::naked_asm!("rdtsc", "shl rdx, 32", "or rax, rdx", "ret")
}
