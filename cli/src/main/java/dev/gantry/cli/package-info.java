/// The `gantry` command line.
@NullMarked
package dev.gantry.cli;

import org.jspecify.annotations.NullMarked;
