//! Delays of a fixed length at the places where the profiling of 2006 had, or could have had, code.
//!
//! Which ingredient of the profiler delayed what is not known, so each place is a delay of its own here, of
//! any length: `attempt=6us` in a lock's name ([`Delays::parse`]).

use core::fmt;

/// Where a thread is held up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Before the first attempt of an acquisition.
    Before,
    /// After each failed attempt: where the option adds to the mutex atomically.
    Attempt,
    /// Between two looks at an owner that runs: where the message's own patch backs off.
    Poll,
    /// Within the section, at its beginning.
    Inside,
    /// After the release.
    After,
    /// Before a waiter is woken, under the lock of its chain.
    Wake,
}

impl Place {
    /// All, in the order in which an acquisition meets them.
    pub const ALL: [Self; 6] =
        [Self::Before, Self::Attempt, Self::Poll, Self::Inside, Self::After, Self::Wake];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::Attempt => "attempt",
            Self::Poll => "poll",
            Self::Inside => "inside",
            Self::After => "after",
            Self::Wake => "wake",
        }
    }

    /// In words, after "a delay".
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::Before => "before the first attempt of each acquisition",
            Self::Attempt => "after each failed attempt",
            Self::Poll => "between two looks at an owner that runs",
            Self::Inside => "inside each section",
            Self::After => "after each release",
            Self::Wake => "before each wake-up",
        }
    }

    /// The place of that name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|place| place.name() == name)
    }
}

/// A delay for each place, ns; 0: none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Delays([u32; Place::ALL.len()]);

/// The design that has delays, by its name in the registry.
pub const LOCK: &str = "classic-mtx-delayed";

/// How delays are written, for messages.
pub const SYNTAX: &str = "+PLACE=TIME, with a place of before, attempt, poll, inside, after, wake, and a time of at most 1 s in ns, us or ms, as in";

/// The longest delay, ns: a second.
const LONGEST_NS: u32 = 1_000_000_000;

impl Delays {
    /// Without delays.
    pub const NONE: Self = Self([0; Place::ALL.len()]);

    /// With `ns` at `place`.
    #[must_use]
    pub const fn with(mut self, place: Place, ns: u32) -> Self {
        self.0[place as usize] = ns;
        self
    }

    /// That at `place`, ns.
    #[must_use]
    pub const fn at(self, place: Place) -> u32 {
        self.0[place as usize]
    }

    /// The delays in the name of a lock: `LOCK+attempt=6us`. Without any, `LOCK` alone has none. `None`: it is
    /// another lock's name, or [`parse`](Self::parse) cannot read what follows.
    #[must_use]
    pub fn in_name(name: &str) -> Option<Self> {
        match name.strip_prefix(LOCK)? {
            "" => Some(Self::NONE),
            delays => Self::parse(delays.strip_prefix('+')?),
        }
    }

    /// Reads `attempt=6us+inside=200ns`. None: a place is unknown or named twice, or a length is not a whole
    /// number of ns, us or ms, or longer than a second.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut delays = Self::NONE;
        let mut named = [false; Place::ALL.len()];
        for part in text.split('+') {
            let (name, length) = part.split_once('=')?;
            let place = Place::by_name(name)?;
            if core::mem::replace(&mut named[place as usize], true) {
                return None;
            }
            delays = delays.with(place, length_ns(length)?);
        }
        Some(delays)
    }
}

fn length_ns(text: &str) -> Option<u32> {
    const UNITS: [(&str, u32); 3] = [("ns", 1), ("us", 1_000), ("ms", 1_000_000)];
    let (number, unit) = UNITS.iter().find_map(|(unit, ns)| Some((text.strip_suffix(unit)?, ns)))?;
    number.parse::<u32>().ok()?.checked_mul(*unit).filter(|ns| *ns <= LONGEST_NS)
}

/// As [`Delays::parse`] reads it; nothing, without delays.
impl fmt::Display for Delays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let given = Place::ALL.into_iter().filter(|place| self.at(*place) > 0);
        for (number, place) in given.enumerate() {
            let plus = if number > 0 { "+" } else { "" };
            write!(f, "{plus}{}={}ns", place.name(), self.at(place))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_names() {
        for place in Place::ALL {
            assert_eq!(Place::by_name(place.name()), Some(place));
        }
        assert_eq!(Place::by_name("between"), None);
    }

    #[test]
    fn delays_are_in_names() {
        assert!(crate::designs::by_name(LOCK).is_some());
        let attempt = Delays::NONE.with(Place::Attempt, 6_000);
        assert_eq!(Delays::in_name(LOCK), Some(Delays::NONE));
        assert_eq!(Delays::in_name("classic-mtx-delayed+attempt=6us"), Some(attempt));
        for wrong in ["classic-mtx", "classic-mtx-delayed+", "classic-mtx-delayed-attempt=6us"] {
            assert_eq!(Delays::in_name(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn delays_are_read() {
        let both = Delays::NONE.with(Place::Attempt, 6_000).with(Place::Inside, 200);
        assert_eq!(Delays::parse("attempt=6us+inside=200ns"), Some(both));
        assert_eq!(Delays::parse("wake=1000ms").map(|delays| delays.at(Place::Wake)), Some(1_000_000_000));
        for wrong in [
            "",
            "attempt",
            "attempt=6",
            "attempt=us",
            "there=6us",
            "poll=1us+poll=2us",
            "poll=1001ms",
            "poll=-1us",
        ] {
            assert_eq!(Delays::parse(wrong), None, "{wrong}");
        }
    }
}
