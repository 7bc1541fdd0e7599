@NullMarked
package dev.gantry.formats.checkpoint;

import org.jspecify.annotations.NullMarked;
