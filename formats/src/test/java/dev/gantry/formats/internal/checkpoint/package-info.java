@NullMarked
package dev.gantry.formats.internal.checkpoint;

import org.jspecify.annotations.NullMarked;
