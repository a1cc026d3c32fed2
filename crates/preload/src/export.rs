//! How a function gets its exported names.

/// Defines `extern "C"` functions that call their namesakes in `spinpark-pthread`, and exports each under every name
/// and version that is given. `@@` marks the version that new programs are linked to, as in glibc.
///
/// The assembler's `.symver` wants a symbol of its own for each version, so each gets an alias of the function; those
/// aliases and the functions' own names are not exported.
macro_rules! export {
    ($(
        $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? = $function:path,
        [$($alias:literal as $symbol:literal),+ $(,)?];
    )*) => {$(
        mod $name {
            use super::*;
            /// # Safety
            ///
            /// As its namesake in POSIX or C11.
            unsafe extern "C" fn exported($($argument: $type),*) $(-> $result)? {
                // SAFETY: the caller's arguments, passed on.
                unsafe { $function($($argument),*) }
            }
            core::arch::global_asm!(
                $(
                    concat!(".globl ", $alias),
                    concat!(".type ", $alias, ", @function"),
                    concat!(".set ", $alias, ", {function}"),
                    concat!(".symver ", $alias, ", ", $symbol),
                )+
                function = sym exported,
            );
        }
    )*};
}

pub(crate) use export;
