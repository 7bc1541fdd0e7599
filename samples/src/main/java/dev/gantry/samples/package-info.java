/// The `gantry` command line, and the examples of the README.
@NullMarked
package dev.gantry.samples;

import org.jspecify.annotations.NullMarked;
