//! What depends on the CPU's architecture: its counter, how code calls, where return addresses lie, where the C
//! library's descriptor of a thread is.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::{
    code_address, counter, counter_is_even, ends_in_call, return_place, stack_by_descriptor, FRAME_POINTER,
    HAS_FRAME_RECORDS,
};
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::{
    code_address, counter, counter_is_even, ends_in_call, return_place, stack_by_descriptor, FRAME_POINTER,
    HAS_FRAME_RECORDS,
};
