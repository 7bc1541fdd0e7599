@NullMarked
package dev.gantry.formats.internal.index;

import org.jspecify.annotations.NullMarked;
