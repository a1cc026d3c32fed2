//! A hash of a lock's address, by which threads find what they know of the lock.

/// Values that a hash of an address has.
pub(crate) const HASHES: usize = 1 << 16;

/// A hash of an address, less than [`HASHES`]: the upper half of the product of address / 8 and this, 32 bits
/// each.
pub(crate) const FACTOR: u32 = 0x9E37_79B1;

/// See [`FACTOR`].
#[inline(always)]
pub(crate) fn hash(address: usize) -> usize {
    // Fibonacci hashing: locks at one distance from each other, as in an array or in threads' stacks, get
    // different ones.
    ((address >> 3) as u32).wrapping_mul(FACTOR) as usize >> 16
}
