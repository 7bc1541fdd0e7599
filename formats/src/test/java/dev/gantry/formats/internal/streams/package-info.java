@NullMarked
package dev.gantry.formats.internal.streams;

import org.jspecify.annotations.NullMarked;
