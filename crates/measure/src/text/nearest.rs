//! What a misspelt name may have meant.

/// The known name that is most like `name`, if any is.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const ALIKE: f64 = 0.7;
    known
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(name, candidate), candidate))
        .filter(|(alike, _)| *alike >= ALIKE)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// `; did you mean …?`, if something is known that is like it.
#[must_use]
pub fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, known).map_or_else(String::new, |nearest| format!("; did you mean `{nearest}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_understood_and_nonsense_is_not() {
        let known = ["saturated", "hot-lock", "spinpark"];
        assert_eq!(nearest("saturatde", known), Some("saturated"));
        assert_eq!(did_you_mean("sinpark", known), "; did you mean `spinpark`?");
        assert_eq!(did_you_mean("zzz", known), "");
    }
}
