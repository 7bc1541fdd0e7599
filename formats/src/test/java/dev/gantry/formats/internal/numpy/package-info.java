@NullMarked
package dev.gantry.formats.internal.numpy;

import org.jspecify.annotations.NullMarked;
