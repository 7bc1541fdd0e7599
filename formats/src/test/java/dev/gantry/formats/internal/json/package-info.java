@NullMarked
package dev.gantry.formats.internal.json;

import org.jspecify.annotations.NullMarked;
