//! What depends on the CPU's architecture of the processes and core dumps that are read, which is this command's
//! own. (Recordings of others are read, too: [`symbols`](crate::symbols) goes by the program's file.)

#[cfg_attr(target_arch = "x86_64", path = "machine/x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "machine/aarch64.rs")]
mod of_this_command;

pub(crate) use of_this_command::{
    ELF, ENDS, NAME, POINTER, REGISTERS, RETURN, RETURN_ENDS_FRAME, SLEEPS, STACK, THREAD_ID, code_address,
    restarted,
};
