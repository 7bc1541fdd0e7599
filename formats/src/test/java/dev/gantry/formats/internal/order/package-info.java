@NullMarked
package dev.gantry.formats.internal.order;

import org.jspecify.annotations.NullMarked;
