//! Which methods are explained, on the command line and in a session.

use std::io;

use clap::Args;

use super::destination::{Destination, Shape};
use crate::profile::Profile;
use crate::report::explain::{Explained, Unexplained, explain, json, text};
use crate::report::select::MethodSelector;

/// Which methods, and where what is known of them goes.
#[derive(Clone, Debug, Args)]
pub struct Explaining {
    /// com.acme.Cart::total, com.acme.Cart::total(int), a class with all its methods (com.acme.Cart), com.acme.*
    method: MethodSelector,
    /// Explain at most so many; as text
    #[arg(long, value_name = "N", default_value_t = 10)]
    limit: usize,
    #[command(flatten)]
    destination: Destination,
}

impl Explaining {
    /// Finds out before the work what would be found out after it.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.destination.check()
    }

    /// What a profile knows of them.
    pub(crate) fn explain(&self, profile: &Profile) -> Result<Vec<Explained>, Unexplained> {
        explain(profile, &self.method)
    }

    /// Writes it.
    pub(crate) fn write(&self, explained: &[Explained]) -> io::Result<()> {
        self.destination.write(&mut |shape, mut out| match shape {
            Shape::Json => json::write(explained, &self.method.to_string(), &mut out),
            Shape::Text(style) => text::write(explained, self.limit, &style, &mut out),
        })
    }
}
