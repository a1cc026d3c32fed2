//! Sets of small numbers.

/// A set of cores, or of caches. Takes room for the largest member only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    #[inline]
    pub(crate) fn has(&self, number: u32) -> bool {
        self.0.get(number as usize / 64).is_some_and(|word| word & (1 << (number % 64)) != 0)
    }

    pub(crate) fn insert(&mut self, number: u32) {
        let word = number as usize / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (number % 64);
    }

    pub(crate) fn clear(&mut self) {
        self.0.fill(0);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().enumerate().flat_map(|(index, &word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(index as u32 * 64 + bit)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_was_put_in() {
        let mut bits = Bits::default();
        assert!(bits.is_empty() && !bits.has(700));
        [3, 64, 700, 63].into_iter().for_each(|number| bits.insert(number));
        assert_eq!(bits.iter().collect::<Vec<_>>(), [3, 63, 64, 700]);
        assert!(bits.has(63) && !bits.has(65));
        bits.clear();
        assert!(bits.is_empty());
    }
}
