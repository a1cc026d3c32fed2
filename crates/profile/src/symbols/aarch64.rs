//! Calls and jumps in the code of files for AArch64, whose instructions have four bytes each.

/// The number of the return address' register in unwind tables.
pub(super) const RETURN: u16 = 30;
/// The registers of which callers need the value; the last is the frame pointer.
pub(super) const KEPT: [u16; 11] = [19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29];
/// The length of an instruction.
pub(super) const LENGTH: u64 = 4;

/// An instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Instruction(u32);

impl Instruction {
    pub(super) fn new(bytes: [u8; 4]) -> Self {
        Self(u32::from_le_bytes(bytes))
    }

    /// The bits from `low` on, `count` of them, as a number with a sign.
    fn signed(self, low: u32, count: u32) -> i64 {
        i64::from((self.0 << (32 - low - count)).cast_signed() >> (32 - count))
    }

    fn is_direct_call(self) -> bool {
        self.0 & 0xfc00_0000 == 0x9400_0000
    }

    /// `bl`, `blr`, or one of the latter's forms that check the address.
    pub(super) fn is_call(self) -> bool {
        self.is_direct_call() || self.0 & 0xfeff_f000 == 0xd63f_0000
    }

    /// Where a direct call at `address` goes.
    pub(super) fn called_from(self, address: u64) -> Option<u64> {
        self.is_direct_call().then(|| address.wrapping_add_signed(4 * self.signed(0, 26)))
    }

    /// Where a direct call, or a jump with or without a condition, at `address` goes.
    pub(super) fn target_from(self, address: u64) -> Option<u64> {
        let distance = match self.0 {
            it if it & 0x7c00_0000 == 0x1400_0000 => self.signed(0, 26), // `b`, `bl`
            it if it & 0xff00_0000 == 0x5400_0000 => self.signed(5, 19), // `b.COND`, `bc.COND`
            it if it & 0x7e00_0000 == 0x3400_0000 => self.signed(5, 19), // `cbz`, `cbnz`
            it if it & 0x7e00_0000 == 0x3600_0000 => self.signed(5, 14), // `tbz`, `tbnz`
            _ => return None,
        };
        Some(address.wrapping_add_signed(4 * distance))
    }
}

/// The place of the address that a stub at `stub` jumps to. `code`: the bytes at an address.
pub(super) fn stubs_pointer(stub: u64, code: impl Fn(u64) -> Option<[u8; 4]>) -> Option<u64> {
    /// `bti c`.
    const MARK: Instruction = Instruction(0xd503_245f);
    let at = |address| code(address).map(Instruction::new);
    let first = stub + if at(stub)? == MARK { LENGTH } else { 0 };
    let (page, load) = (at(first)?, at(first + LENGTH)?);
    // `adrp x16, PAGE`, and `ldr x17, [x16, #PLACE]`.
    if page.0 & 0x9f00_001f != 0x9000_0010 || load.0 & 0xffc0_03ff != 0xf940_0211 {
        return None;
    }
    let pages = page.signed(5, 19) << 2 | i64::from(page.0 >> 29 & 3);
    let place = u64::from(load.0 >> 10 & 0xfff) * 8;
    Some((first & !0xfff).wrapping_add_signed(pages << 12).wrapping_add(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As GNU's assembler makes them, at 0x1000.
    #[test]
    fn where_instructions_go() {
        let target = |code: u32| Instruction(code).target_from(0x1000);
        for (code, to) in [
            (0x9400_0002, 0x1008), // bl
            (0x97ff_ffff, 0xffc),
            (0x1400_0004, 0x1010), // b
            (0x5400_0040, 0x1008), // b.eq
            (0xb4ff_ffe0, 0xffc),  // cbz x0
            (0x3500_0041, 0x1008), // cbnz w1
            (0x3600_0042, 0x1008), // tbz w2, #0
            (0xb7ff_ffe3, 0xffc),  // tbnz x3, #63
        ] {
            assert_eq!(target(code), Some(to), "{code:#x}");
        }
        for code in [0xd503_201f, 0xd65f_03c0, 0xd61f_0200, 0x9100_03fd] {
            assert_eq!(target(code), None, "{code:#x}");
        }
        assert_eq!(Instruction(0x1400_0004).called_from(0x1000), None);
        assert_eq!(Instruction(0x9400_0002).called_from(0x1000), Some(0x1008));
        assert!([0x9400_0002, 0xd63f_0060, 0xd73f_0864].into_iter().all(|code| Instruction(code).is_call()));
        assert!(!Instruction(0xd61f_0060).is_call());
    }

    #[test]
    fn stubs_jump_by_a_pointer() {
        // adrp x16, 0x1f000 from 0x630; ldr x17, [x16, #4016]; with and without `bti c`.
        let stub = [0xd503_245f_u32, 0xf000_00f0, 0xf947_da11, 0x913e_c210, 0xd61f_0220];
        let code = |from: usize| {
            move |at: u64| stub.get(from + (at as usize - 0x630) / 4).map(|code| code.to_le_bytes())
        };
        assert_eq!(stubs_pointer(0x630, code(0)), Some(0x1f000 + 4016));
        assert_eq!(stubs_pointer(0x630, code(1)), Some(0x1f000 + 4016));
        assert_eq!(stubs_pointer(0x630, code(2)), None);
    }
}
