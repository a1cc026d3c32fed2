//! The table, and what is asked of it: super-smack's `http_auth`.
//!
//! Made up, the same in every run: the word of row `n` can be computed, so no list of them is kept.

/// Rows, unless told otherwise: at least as many as super-smack wants.
pub const ROWS: u64 = 90_000;

/// The database that the table is in.
pub(super) const DATABASE: &str = "spinpark";

/// Rows per statement when the table is filled.
const ROWS_PER_STATEMENT: u64 = 1_000;

/// Statements that make the table with `rows` rows.
pub(super) fn statements(rows: u64) -> impl Iterator<Item = String> {
    let make = [
        format!("CREATE DATABASE {DATABASE}"),
        format!(
            "CREATE TABLE {DATABASE}.http_auth (username CHAR(25) NOT NULL PRIMARY KEY, pass CHAR(25), uid INT NOT NULL, \
             gid INT NOT NULL)"
        ),
    ];
    let starts = (0..rows).step_by(ROWS_PER_STATEMENT as usize);
    make.into_iter().chain(starts.map(move |start| {
        let row = |row| format!("('{}','{}',{row},{})", word(row), password(0, row), row % 1_000);
        let values: Vec<String> = (start..rows.min(start + ROWS_PER_STATEMENT)).map(row).collect();
        format!("INSERT INTO {DATABASE}.http_auth VALUES {}", values.join(","))
    }))
}

/// The key of row `row`: twelve letters, and the number of the row, so that it is the only one.
pub(super) fn word(row: u64) -> String {
    let mut random = Random::new(row);
    let letters: String = (0..12).map(|_| char::from(b'a' + (random.next() % 26) as u8)).collect();
    format!("{letters}{row}")
}

/// A password that no other round of no other client has.
pub(super) fn password(client: u64, round: u64) -> String {
    format!("p{client}x{round}")
}

/// What the row is asked for with.
pub(super) fn select(word: &str) -> String {
    format!("SELECT * FROM {DATABASE}.http_auth WHERE username = '{word}'")
}

/// What the row is changed with.
pub(super) fn update(word: &str, password: &str) -> String {
    format!("UPDATE {DATABASE}.http_auth SET pass = '{password}' WHERE username = '{word}'")
}

/// Marsaglia's xorshift, started by a number that may be anything (splitmix64's step spreads it).
#[derive(Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        let mut state = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self((state ^ (state >> 31)) | 1)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn words_are_different_and_fit() {
        let words: HashSet<String> = (0..2_000).map(word).collect();
        assert_eq!(words.len(), 2_000);
        assert!(word(999_999_999).len() <= 25 && word(0).starts_with(char::is_alphabetic));
        assert_eq!(word(17), word(17));
    }

    #[test]
    fn all_rows_are_inserted() {
        let statements: Vec<String> = statements(2_500).collect();
        assert_eq!(statements.len(), 2 + 3);
        let rows: usize = statements[2..].iter().map(|statement| statement.matches("('").count()).sum();
        assert_eq!(rows, 2_500);
        assert!(statements[4].contains(&format!("'{}'", word(2_499))));
        assert_eq!(super::statements(1).count(), 3);
    }
}
