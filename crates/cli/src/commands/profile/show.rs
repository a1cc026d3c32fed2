//! Where what was recorded goes: tables, a page, files for other tools.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use spinpark_bench::report::json::Output;
use spinpark_profile::json::Loaded;
use spinpark_profile::model::Profile;
use spinpark_profile::text::{Style, wrap};
use spinpark_profile::units::one_line;
use spinpark_profile::{answer, folded, html, pprof};

use super::view;
use crate::cli::Showing;
use crate::say::Say;

/// What is wanted, with files opened before anything is run: a name that cannot be written is known at once.
pub(crate) struct Shower<'a> {
    showing: &'a Showing,
    html: Option<(PathBuf, File)>,
    pprof: Option<(PathBuf, File)>,
    folded: Option<(PathBuf, File)>,
    json: Option<Output>,
    say: Say,
    /// Data goes to standard output, and nothing else.
    is_taken: bool,
}

fn create(path: &Path) -> anyhow::Result<(PathBuf, File)> {
    let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    Ok((path.to_owned(), file))
}

impl<'a> Shower<'a> {
    /// Opens what is to be written.
    ///
    /// # Errors
    ///
    /// If that is not possible.
    pub(crate) fn new(showing: &'a Showing, on_stderr: bool) -> anyhow::Result<Self> {
        let [json_taken, folded_taken] =
            [&showing.json, &showing.folded].map(|file| file.as_deref().is_some_and(Output::is_stdout));
        if json_taken && folded_taken {
            bail!("--json and --folded cannot both go to standard output; name a file for one of them");
        }
        let folded = showing.folded.as_deref().filter(|path| !Output::is_stdout(path));
        Ok(Self {
            showing,
            html: showing.html.as_deref().map(create).transpose()?,
            pprof: showing.pprof.as_deref().map(create).transpose()?,
            folded: folded.map(create).transpose()?,
            json: showing.json.as_deref().map(Output::open).transpose()?,
            say: Say { on_stderr },
            is_taken: json_taken || folded_taken,
        })
    }

    /// Shows `loaded`.
    ///
    /// # Errors
    ///
    /// If there is no such process, or something cannot be written.
    pub(crate) fn show(self, loaded: &Loaded) -> anyhow::Result<()> {
        let shown = self.chosen(&loaded.profiles)?;
        let all: Vec<Profile> = match self.showing.process {
            Some(_) => vec![shown.clone()],
            None => loaded.profiles.clone(),
        };
        for error in &loaded.broken {
            Say { on_stderr: true }.line(format_args!("Warning: {error}"));
        }
        if !self.is_taken {
            let style = match self.say.on_stderr {
                true => Style::of(&io::stderr()),
                false => Style::of_stdout(),
            };
            let style = Style { rows: self.showing.top, ..style };
            self.say.line(view(shown, self.showing.view, style));
            others(&all, shown, style, self.say);
        }
        let mut written = Vec::new();
        if let Some((path, file)) = self.html {
            save(&path, file, page(&all)?.as_bytes())?;
            written.push(path);
        }
        if let Some((path, file)) = self.pprof {
            pprof::write(&all, BufWriter::new(file))
                .with_context(|| format!("cannot write {}", path.display()))?;
            written.push(path);
        }
        let stacks = || {
            all.iter().map(|profile| folded::folded(profile, folded::Options::default())).collect::<String>()
        };
        match self.folded {
            Some((path, file)) => {
                save(&path, file, stacks().as_bytes())?;
                written.push(path);
            }
            None if self.showing.folded.is_some() => {
                io::stdout().lock().write_all(stacks().as_bytes()).or_else(closed)?;
            }
            None => {}
        }
        if let Some(json) = self.json {
            json.write(&all)?;
        }
        for path in written {
            Say { on_stderr: true }.line(format_args!("Wrote {}", path.display()));
        }
        Ok(())
    }

    fn chosen<'p>(&self, profiles: &'p [Profile]) -> anyhow::Result<&'p Profile> {
        let Some(pid) = self.showing.process else {
            return most(profiles).context("there is no process in the recording");
        };
        let found = profiles.iter().find(|profile| profile.pid == pid);
        found.with_context(|| {
            let known: Vec<String> = profiles.iter().map(|profile| profile.pid.to_string()).collect();
            format!("there is no process {pid} in the recording; there are {}", known.join(", "))
        })
    }
}

/// Who reads may have gone.
fn closed(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) }
}

fn save(path: &Path, mut file: File, bytes: &[u8]) -> anyhow::Result<()> {
    file.write_all(bytes).with_context(|| format!("cannot write {}", path.display()))
}

/// The process that waited most.
pub(crate) fn most(profiles: &[Profile]) -> Option<&Profile> {
    profiles.iter().max_by_key(|profile| (profile.lock_wait(), profile.signal_wait()))
}

/// What is said of other processes: that they are there.
fn others(all: &[Profile], shown: &Profile, style: Style, say: Say) {
    let others: Vec<String> = all
        .iter()
        .filter(|profile| profile.pid != shown.pid)
        .map(|profile| {
            let program = Path::new(&profile.program).file_name().unwrap_or_default().to_string_lossy();
            format!("{} ({})", profile.pid, one_line(&program))
        })
        .collect();
    if !others.is_empty() {
        let few = others[..others.len().min(8)].join(", ");
        let more = if others.len() > 8 { format!(" and {} more", others.len() - 8) } else { String::new() };
        let text = format!(
            "This is the process that waited most. Other processes waited less: {few}{more}; `--process PID` shows one."
        );
        say.line(wrap(&text, style.width, 0));
    }
}

/// The page.
fn page(profiles: &[Profile]) -> anyhow::Result<String> {
    let answers: Vec<Vec<String>> = profiles
        .iter()
        .map(|profile| {
            let answer = answer::answer(profile);
            std::iter::once(answer.headline).chain(answer.details).collect()
        })
        .collect();
    let mut shown: Vec<html::Shown<'_>> =
        profiles.iter().zip(&answers).map(|(profile, answer)| html::Shown { profile, answer }).collect();
    shown.sort_by_key(|shown| std::cmp::Reverse((shown.profile.lock_wait(), shown.profile.signal_wait())));
    html::html(&shown).context("cannot make the page")
}
