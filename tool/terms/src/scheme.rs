use serde::{Deserialize, Serialize};

/// When a method's callees are instrumented.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scheme {
    /// When it is entered for the first time (JFluid's scheme B).
    #[default]
    Lazy,
    /// As soon as it is instrumented itself, and its callees' classes are loaded (JFluid's scheme A).
    Eager,
    /// Every method that the filters admit is instrumented, called by a root or not.
    Total,
}
