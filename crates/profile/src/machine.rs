//! What depends on the CPU's architecture of the processes and core dumps that are read, which is this command's
//! own. (Recordings of others are read, too: [`symbols`](crate::symbols) goes by the program's file.)

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::{
    ELF, ENDS, NAME, POINTER, REGISTERS, RETURN, RETURN_ENDS_FRAME, SLEEPS, STACK, THREAD_ID, code_address,
    restarted,
};
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::{
    ELF, ENDS, NAME, POINTER, REGISTERS, RETURN, RETURN_ENDS_FRAME, SLEEPS, STACK, THREAD_ID, code_address,
    restarted,
};
