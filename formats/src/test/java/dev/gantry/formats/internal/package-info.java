@NullMarked
package dev.gantry.formats.internal;

import org.jspecify.annotations.NullMarked;
