//! What the loads work on: made up, the same in every run.

use std::hash::{DefaultHasher, Hasher};
use std::sync::LazyLock;

/// Stands for bytes too many to print when they differ.
#[derive(Debug, PartialEq, Eq)]
pub struct Digest {
    len: usize,
    hash: u64,
}

impl Digest {
    /// Of `bytes`.
    pub fn of(bytes: &[u8]) -> Digest {
        let mut hasher = DefaultHasher::new();
        hasher.write(bytes);
        Digest { len: bytes.len(), hash: hasher.finish() }
    }
}

/// 24 MiB of words, some of them far more frequent than others: compressible, not trivially.
pub fn text() -> &'static [u8] {
    static TEXT: LazyLock<Vec<u8>> = LazyLock::new(|| {
        const LEN: usize = 24 << 20;
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let vocabulary: Vec<Vec<u8>> = (0..4096).map(|_| random.word()).collect();
        let mut text = Vec::with_capacity(LEN + 16);
        while text.len() < LEN {
            let bits = random.next();
            let index = (bits & (bits >> 20)) % 4096;
            text.extend_from_slice(&vocabulary[usize::try_from(index).expect("less than 4096")]);
        }
        text.truncate(LEN);
        text
    });
    &TEXT
}

/// `frames` frames of 640 x 360 in raw 4:2:0: the [`text`] as a noisy texture that scrolls.
pub fn video(frames: usize) -> Vec<u8> {
    const WIDTH: usize = 640;
    const FRAME: usize = WIDTH * 360 * 3 / 2;
    const SCROLL: usize = 2 * WIDTH + 4;
    (0..frames).map(|frame| &text()[frame * SCROLL..][..FRAME]).collect::<Vec<_>>().concat()
}

/// Marsaglia's xorshift.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn word(&mut self) -> Vec<u8> {
        let mut word: Vec<u8> = (0..2 + self.next() % 9).map(|_| b'a' + (self.next() % 26) as u8).collect();
        word.push(b' ');
        word
    }
}
