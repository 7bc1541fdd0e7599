/// What inspect and index show.
@NullMarked
package dev.gantry.cli.internal.contents;

import org.jspecify.annotations.NullMarked;
