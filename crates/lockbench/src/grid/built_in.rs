//! The planes that the command has built in, and what a definition must satisfy.

use super::definition::Grid;
use super::figure::Against;
use crate::locks::definitions::{BadDefinition, Definitions};

impl Grid {
    /// What the command knows by itself.
    ///
    /// # Errors
    ///
    /// If the file is wrong. A test makes sure that it is not.
    pub fn built_in(definitions: &Definitions) -> Result<Self, BadDefinition> {
        const FILE: &str = "grid.toml";
        let mut grid: Self = toml::from_str(include_str!("../../definitions/grid.toml"))
            .map_err(|error| BadDefinition::Syntax { file: FILE.to_owned(), error: Box::new(error) })?;
        definitions.name_peers(&mut grid.implementations);
        let wrong = |what| BadDefinition::Sense { file: FILE.to_owned(), what };
        grid.check(definitions).map_err(wrong)?;
        Ok(grid)
    }

    /// Checks that everything makes sense and every name is defined.
    fn check(&self, definitions: &Definitions) -> Result<(), String> {
        let known = |name: &String| definitions.implementation(name).map(|_| ());
        self.implementations.iter().try_for_each(known)?;
        for plane in &self.planes {
            let of_plane = |what| format!("plane `{}`: {what}", plane.name);
            plane.peers.iter().try_for_each(known).map_err(of_plane)?;
            plane.axes.check().map_err(of_plane)?;
            plane.quick.check().map_err(of_plane)?;
            super::cells::points(plane, &plane.axes).map_err(of_plane)?;
            super::cells::points(plane, &plane.axes.replaced_by(&plane.quick)).map_err(of_plane)?;
        }
        for bound in &self.bounds {
            let of_bound = |what| format!("bound `{}`: {what}", bound.what);
            bound.planes.iter().try_for_each(|name| self.plane(name).map(|_| ())).map_err(of_bound)?;
            bound.ours.iter().try_for_each(known).map_err(of_bound)?;
            if let Against::Implementation(name) = &bound.against {
                known(name).map_err(of_bound)?;
            }
            if bound.at_least.is_some() == bound.at_most.is_some() {
                return Err(of_bound(String::from("it needs either `at_most` or `at_least`")));
            }
        }
        Ok(())
    }
}
