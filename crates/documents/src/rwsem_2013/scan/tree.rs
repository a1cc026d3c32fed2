//! What is scanned: a tree that is made, always the same one, or a user's.

use std::fs;
use std::path::{Path, PathBuf};

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use crate::workloads::job::JobError;

/// Files of a tree that is made.
pub const FILES: usize = 512;

/// Their size, at most.
const LARGEST: usize = 128 << 10;

/// About the size of the tree, in bytes: sizes are spread evenly over their logarithms.
pub const TREE_BYTES: u64 = 24 << 20;

/// Decides what is in the tree, and what the signatures are.
const SEED: u64 = 0x5ca9;

/// How many signatures are looked for.
const SIGNATURES: usize = 32;

/// The length of a signature: too long to occur by chance.
const SIGNATURE_BYTES: usize = 16;

/// One file in this many has a signature planted.
const PLANTED: usize = 7;

/// Deeper trees, and larger ones, are not read.
const DEEPEST: usize = 64;
const MOST: usize = 100_000;

/// A file, and what must be found in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) path: PathBuf,
    /// Signatures in their order; none if that is not known.
    pub(super) hits: Option<Vec<u64>>,
}

pub(super) fn signatures() -> Vec<[u8; SIGNATURE_BYTES]> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(SEED);
    (0..SIGNATURES).map(|_| rng.random()).collect()
}

/// Makes a tree in `directory`: 16 directories of files from 4 KB to 128 KB, some with a signature.
pub(super) fn make(directory: &Path) -> Result<Vec<Known>, JobError> {
    let signatures = signatures();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(SEED + 1);
    let mut files = Vec::with_capacity(FILES);
    for number in 0..FILES {
        let inner = directory.join(format!("{:02}", number % 16));
        let path = inner.join(format!("{number:04}"));
        let failed = || JobError::failed(format!("cannot make {}", path.display()));
        fs::create_dir_all(&inner).map_err(failed())?;
        let length = LARGEST >> rng.random_range(0..=5);
        let mut bytes = vec![0; length];
        rng.fill(&mut bytes[..]);
        let mut hits = Vec::new();
        if number % PLANTED == 0 {
            let which = rng.random_range(0..SIGNATURES);
            let place = rng.random_range(0..length - SIGNATURE_BYTES);
            bytes[place..place + SIGNATURE_BYTES].copy_from_slice(&signatures[which]);
            hits.push(which as u64);
        }
        fs::write(&path, bytes).map_err(failed())?;
        files.push(Known { path, hits: Some(hits) });
    }
    Ok(files)
}

/// Finds the files of a user's tree that are not empty and can be read. Links are not followed.
pub(super) fn read(tree: &Path) -> Result<Vec<Known>, JobError> {
    let mut files = Vec::new();
    visit(tree, 0, &mut files).map_err(JobError::failed(format!("cannot read {}", tree.display())))?;
    if files.is_empty() {
        return Err(JobError::Refused(format!("there is no file to scan in {}", tree.display())));
    }
    files.sort_by(|a: &Known, b: &Known| a.path.cmp(&b.path));
    Ok(files)
}

fn visit(directory: &Path, depth: usize, files: &mut Vec<Known>) -> std::io::Result<()> {
    for entry in fs::read_dir(directory)?.flatten() {
        let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
        if kind.is_dir() && depth < DEEPEST {
            // What cannot be read is left out.
            let _ = visit(&path, depth + 1, files);
        }
        let is_readable =
            || entry.metadata().is_ok_and(|data| data.len() > 0) && fs::File::open(&path).is_ok();
        if kind.is_file() && files.len() < MOST && is_readable() {
            files.push(Known { path, hits: None });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use aho_corasick::AhoCorasick;

    use super::*;

    #[test]
    fn the_same_tree_every_time_with_signatures_in_every_seventh_file() {
        let directories = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [first, second] = directories.each_ref().map(|directory| make(directory.path()).unwrap());
        assert_eq!(
            first.iter().map(|file| &file.hits).collect::<Vec<_>>(),
            second.iter().map(|file| &file.hits).collect::<Vec<_>>()
        );
        let planted =
            first.iter().filter(|file| file.hits.as_ref().is_some_and(|hits| hits.len() == 1)).count();
        assert_eq!(planted, FILES.div_ceil(PLANTED));
        let bytes: u64 = first.iter().map(|file| fs::metadata(&file.path).unwrap().len()).sum();
        assert!((TREE_BYTES / 2..TREE_BYTES * 2).contains(&bytes), "{bytes}");
        let patterns = AhoCorasick::new(signatures()).unwrap();
        for file in first {
            let bytes = fs::read(&file.path).unwrap();
            let found: Vec<u64> = patterns.find_iter(&bytes).map(|hit| hit.pattern().as_u64()).collect();
            assert_eq!(Some(found), file.hits);
        }
    }

    #[test]
    fn a_users_tree() {
        let directory = tempfile::tempdir().unwrap();
        assert!(read(directory.path()).unwrap_err().to_string().contains("no file to scan"));
        fs::create_dir(directory.path().join("a")).unwrap();
        fs::write(directory.path().join("a/b"), "x").unwrap();
        fs::write(directory.path().join("empty"), "").unwrap();
        std::os::unix::fs::symlink("/", directory.path().join("link")).unwrap();
        assert_eq!(
            read(directory.path()).unwrap(),
            [Known { path: directory.path().join("a/b"), hits: None }]
        );
        assert!(read(Path::new("/no/such")).is_err());
    }
}
