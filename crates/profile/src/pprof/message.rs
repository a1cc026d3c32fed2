//! The messages of the pprof format: `perftools.profiles` of <https://github.com/google/pprof>,
//! `profile.proto`. Only what we write and read.

/// The whole profile.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Profile {
    /// What the values of samples are.
    #[prost(message, repeated, tag = "1")]
    pub sample_type: Vec<ValueType>,
    /// The samples.
    #[prost(message, repeated, tag = "2")]
    pub sample: Vec<Sample>,
    /// Programs and libraries.
    #[prost(message, repeated, tag = "3")]
    pub mapping: Vec<Mapping>,
    /// Addresses.
    #[prost(message, repeated, tag = "4")]
    pub location: Vec<Location>,
    /// Functions.
    #[prost(message, repeated, tag = "5")]
    pub function: Vec<Function>,
    /// All strings; the first one is empty.
    #[prost(string, repeated, tag = "6")]
    pub string_table: Vec<String>,
    /// Start, ns since 1970.
    #[prost(int64, tag = "9")]
    pub time_nanos: i64,
    /// For how long, ns.
    #[prost(int64, tag = "10")]
    pub duration_nanos: i64,
    /// What is between samples.
    #[prost(message, optional, tag = "11")]
    pub period_type: Option<ValueType>,
    /// How much of it.
    #[prost(int64, tag = "12")]
    pub period: i64,
    /// Remarks, strings.
    #[prost(int64, repeated, tag = "13")]
    pub comment: Vec<i64>,
    /// The type of values that is shown first, a string.
    #[prost(int64, tag = "14")]
    pub default_sample_type: i64,
}

/// What values are, strings.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct ValueType {
    /// `delay`.
    #[prost(int64, tag = "1")]
    pub r#type: i64,
    /// `nanoseconds`.
    #[prost(int64, tag = "2")]
    pub unit: i64,
}

/// A stack with values.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Sample {
    /// The innermost first.
    #[prost(uint64, repeated, tag = "1")]
    pub location_id: Vec<u64>,
    /// One per sample type.
    #[prost(int64, repeated, tag = "2")]
    pub value: Vec<i64>,
    /// Labels.
    #[prost(message, repeated, tag = "3")]
    pub label: Vec<Label>,
}

/// A label, strings.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Label {
    /// Its name.
    #[prost(int64, tag = "1")]
    pub key: i64,
    /// Its value, if that is a string.
    #[prost(int64, tag = "2")]
    pub str: i64,
    /// Its value, if that is a number.
    #[prost(int64, tag = "3")]
    pub num: i64,
}

/// A program or library.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Mapping {
    /// Its number, from 1 on.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// First address.
    #[prost(uint64, tag = "2")]
    pub memory_start: u64,
    /// The address after the last one.
    #[prost(uint64, tag = "3")]
    pub memory_limit: u64,
    /// Where in the file it starts.
    #[prost(uint64, tag = "4")]
    pub file_offset: u64,
    /// Its path, a string.
    #[prost(int64, tag = "5")]
    pub filename: i64,
    /// A string of hexadecimal digits.
    #[prost(int64, tag = "6")]
    pub build_id: i64,
    /// Functions were looked up already.
    #[prost(bool, tag = "7")]
    pub has_functions: bool,
    /// So were files of sources.
    #[prost(bool, tag = "8")]
    pub has_filenames: bool,
    /// And lines.
    #[prost(bool, tag = "9")]
    pub has_line_numbers: bool,
    /// And inlined functions.
    #[prost(bool, tag = "10")]
    pub has_inline_frames: bool,
}

/// An address.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Location {
    /// Its number, from 1 on.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// The number of its mapping.
    #[prost(uint64, tag = "2")]
    pub mapping_id: u64,
    /// In the addresses of the mapping.
    #[prost(uint64, tag = "3")]
    pub address: u64,
    /// Functions there: inlined ones first.
    #[prost(message, repeated, tag = "4")]
    pub line: Vec<Line>,
}

/// A line of a function.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Line {
    /// The number of the function.
    #[prost(uint64, tag = "1")]
    pub function_id: u64,
    /// The line.
    #[prost(int64, tag = "2")]
    pub line: i64,
}

/// A function, strings.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Function {
    /// Its number, from 1 on.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// Its name.
    #[prost(int64, tag = "2")]
    pub name: i64,
    /// Its name before it was demangled; the same.
    #[prost(int64, tag = "3")]
    pub system_name: i64,
    /// Its source file.
    #[prost(int64, tag = "4")]
    pub filename: i64,
}
