//! The `spinpark` command; all of it is in the library, which the laboratory's command shares.

fn main() -> std::process::ExitCode {
    spinpark_cli::main()
}
