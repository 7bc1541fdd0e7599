/// The `gantry` command line, and the examples of the README.
@NullMarked
package dev.gantry.cli;

import org.jspecify.annotations.NullMarked;
