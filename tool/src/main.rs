//! The `headwater` binary.

fn main() -> std::process::ExitCode {
    headwater::cli::main()
}
