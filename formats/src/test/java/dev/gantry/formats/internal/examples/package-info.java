@NullMarked
package dev.gantry.formats.internal.examples;

import org.jspecify.annotations.NullMarked;
