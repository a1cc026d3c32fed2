//! pthread
#![no_std]
