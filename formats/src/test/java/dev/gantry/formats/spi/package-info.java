@NullMarked
package dev.gantry.formats.spi;

import org.jspecify.annotations.NullMarked;
