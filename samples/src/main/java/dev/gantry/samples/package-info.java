/// The `gantry` command line.
@NullMarked
package dev.gantry.samples;

import org.jspecify.annotations.NullMarked;
