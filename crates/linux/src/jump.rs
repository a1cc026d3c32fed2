//! Assembly of exported functions that first call a function of the library and then jump to another one,
//! with all that their caller has passed, and with its return address.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;
