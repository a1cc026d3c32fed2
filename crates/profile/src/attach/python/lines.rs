//! The line of an instruction, and what is open at it, by the tables that CPython keeps beside its code.

use super::layout::Lines;

/// The line of the instruction at `offset`, in bytes from the first one, by a table of this format. `first`: the
/// line at which the code begins. None if it has none, or the table ends before it.
pub(super) fn line(format: Lines, table: &[u8], first: u32, offset: u32) -> Option<u32> {
    let line = match format {
        Lines::Lnotab => lnotab(table, first, offset),
        Lines::Table => pairs(table, first, offset),
        Lines::Locations => locations(table, first, offset),
    }?;
    u32::try_from(line).ok().filter(|line| *line > 0)
}

/// Of pairs: by how much the offset grows, and then the line.
fn lnotab(table: &[u8], first: u32, offset: u32) -> Option<i64> {
    let (mut at, mut line) = (0_u32, i64::from(first));
    for pair in table.chunks_exact(2) {
        at = at.checked_add(pair[0].into())?;
        if at > offset {
            break;
        }
        line += i64::from(pair[1].cast_signed());
    }
    Some(line)
}

/// Of pairs: how many bytes have the line that is reached by the second.
fn pairs(table: &[u8], first: u32, offset: u32) -> Option<i64> {
    /// These bytes have no line.
    const NONE: i8 = -128;
    let (mut end, mut line) = (0_u32, i64::from(first));
    for pair in table.chunks_exact(2) {
        let step = pair[1].cast_signed();
        line += if step == NONE { 0 } else { i64::from(step) };
        end = end.checked_add(pair[0].into())?;
        if offset < end {
            return (step != NONE).then_some(line);
        }
    }
    None
}

/// Entries: how many instructions one is for, of which kind it is, and how the line changes.
fn locations(table: &[u8], first: u32, offset: u32) -> Option<i64> {
    const UNIT: u32 = 2;
    let (mut end, mut line) = (0_u32, i64::from(first));
    let mut bytes = table.iter().copied();
    while let Some(head) = bytes.next() {
        let kind = (head >> 3) & 15;
        end = end.checked_add(UNIT * (u32::from(head & 7) + 1))?;
        let step = match kind {
            // Only columns, in one byte; and one or two lines on, with columns in two.
            0..=9 => {
                bytes.next()?;
                0
            }
            10..=12 => {
                bytes.nth(1)?;
                i64::from(kind) - 10
            }
            13 => signed(&mut bytes)?,
            14 => {
                let step = signed(&mut bytes)?;
                for _ in 0..3 {
                    number(&mut bytes)?;
                }
                step
            }
            _ => 0,
        };
        line = line.checked_add(step)?;
        if offset < end {
            return (kind != 15).then_some(line);
        }
    }
    None
}

/// Six bits a byte, the lowest first; a seventh says that there are more.
fn number(bytes: &mut impl Iterator<Item = u8>) -> Option<u64> {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = bytes.next()?;
        value |= u64::from(byte & 63).checked_shl(shift)?;
        shift += 6;
        if byte & 64 == 0 {
            return Some(value);
        }
        if shift > 36 {
            return None;
        }
    }
}

/// The lowest bit is the sign.
fn signed(bytes: &mut impl Iterator<Item = u8>) -> Option<i64> {
    let value = number(bytes)?;
    let size = i64::try_from(value >> 1).ok()?;
    Some(if value & 1 == 1 { -size } else { size })
}

/// How many values are on the stack of a frame wherever the handler applies that the instruction at `offset` has:
/// so many it has at least. 0 without a handler.
pub(super) fn open_values(table: &[u8], offset: u32) -> Option<usize> {
    const UNIT: u64 = 2;
    let offset = u64::from(offset);
    let mut bytes = table.iter().copied().peekable();
    let mut found = 0;
    while bytes.peek().is_some() {
        let [start, length, _, height] = [(); 4].map(|()| high_first(&mut bytes));
        let (start, length, height) = (start? * UNIT, length? * UNIT, height? >> 1);
        // They are in order, and do not overlap.
        if start > offset {
            break;
        }
        if offset < start + length {
            found = usize::try_from(height).ok()?;
        }
    }
    Some(found)
}

/// Six bits a byte, the highest first; a seventh says that there are more, and an eighth that an entry begins.
fn high_first(bytes: &mut impl Iterator<Item = u8>) -> Option<u64> {
    /// Bytes of a number.
    const MOST: usize = 6;
    let mut value = 0;
    for _ in 0..MOST {
        let byte = bytes.next()?;
        value = value << 6 | u64::from(byte & 63);
        if byte & 64 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    // Made by CPython 3.9, 3.10 and 3.12 of `def f(a):`, `with a:`, an empty line, `g(a)`, and, behind the statement,
    // `return 1`.
    #[test]
    fn lines_of_instructions() {
        let with = |format, table: &[u8], expected: &[(u32, u32)]| {
            for (offset, expected) in expected {
                assert_eq!(line(format, table, 1, *offset), Some(*expected), "{format:?} at {offset}");
            }
        };
        with(Lines::Lnotab, &[0, 1, 6, 2, 38, 1], &[(0, 2), (5, 2), (6, 4), (43, 4), (44, 5), (60, 5)]);
        let table = [6, 1, 10, 2, 10, 254, 4, 3, 16, 253, 4, 3];
        with(Lines::Table, &table, &[(0, 2), (5, 2), (6, 4), (16, 2), (26, 5), (44, 2), (46, 5)]);
        assert_eq!(line(Lines::Table, &table, 1, 50), None, "behind the end");
        let table = [
            128, 0, 216, 9, 10, 241, 0, 2, 5, 13, 228, 8, 9, 136, 33, 140, 4, 247, 5, 2, 5, 13, 240, 6, 0,
            12, 13, 247, 7, 2, 5, 13, 240, 6, 0, 12, 13, 250,
        ];
        with(
            Lines::Locations,
            &table,
            &[(0, 1), (2, 2), (6, 2), (8, 4), (28, 4), (30, 2), (46, 5), (48, 2), (64, 5)],
        );
        assert_eq!(line(Lines::Locations, &table, 1, 66), None, "it has no line");
        let handlers = [131, 12, 24, 3, 152, 5, 33, 7];
        let open = [(0, 0), (6, 1), (28, 1), (30, 0), (48, 3), (56, 3), (58, 0)];
        for (offset, expected) in open {
            assert_eq!(open_values(&handlers, offset), Some(expected), "at {offset}");
        }
    }

    #[test]
    fn tables_that_are_none() {
        let junk: Vec<u8> = (0..=255).rev().chain([64; 40]).collect();
        for format in [Lines::Lnotab, Lines::Table, Lines::Locations] {
            for start in 0..junk.len() {
                for offset in [0, 1, 60, u32::MAX] {
                    let _ = line(format, &junk[start..], 1, offset);
                    let _ = open_values(&junk[start..], offset);
                }
            }
            assert_eq!(line(format, &[], 0, 0), None, "no line 0");
        }
        assert_eq!(line(Lines::Locations, &[0xf0], 1, 0), None, "it is cut");
        assert_eq!(open_values(&[], 7), Some(0));
        assert_eq!(open_values(&[0x80], 7), None);
    }
}
