//! Strings built, searched, reversed, compared.

use std::hint::black_box;

use super::Context;
use crate::workloads::job::{JobError, expect};

pub(super) fn strings(_: &mut Context) -> Result<(), JobError> {
    for round in 0..200_usize {
        let mut text = String::new();
        for word in ["spin", "queue", "sleep", "contend"].into_iter().cycle().take(40) {
            text.push_str(word);
            text.push(' ');
        }
        text.push_str("over");
        let found = black_box(&text).find("over");
        let words = text.split(' ').count();
        let reversed: String = text.chars().rev().collect();
        let back: String = black_box(reversed).chars().rev().collect();
        let is_right = found == Some(text.len() - 4) && words == 41 && back == text;
        expect(is_right, || format!("round {round}: {words} words, the end at {found:?}"))?;
    }
    Ok(())
}
