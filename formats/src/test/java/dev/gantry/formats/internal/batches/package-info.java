@NullMarked
package dev.gantry.formats.internal.batches;

import org.jspecify.annotations.NullMarked;
