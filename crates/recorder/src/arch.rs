//! What depends on the CPU's architecture: its counter, how code calls, where return addresses lie, where the C
//! library's descriptor of a thread is.

#[cfg_attr(target_arch = "x86_64", path = "arch/x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "arch/aarch64.rs")]
mod of_this_one;

pub(crate) use of_this_one::{
    code_address, counter, counter_is_even, ends_in_call, return_place, stack_by_descriptor, FRAME_POINTER,
    HAS_FRAME_RECORDS,
};
