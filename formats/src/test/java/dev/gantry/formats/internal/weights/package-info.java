@NullMarked
package dev.gantry.formats.internal.weights;

import org.jspecify.annotations.NullMarked;
