@NullMarked
package dev.gantry.formats.dataset;

import org.jspecify.annotations.NullMarked;
