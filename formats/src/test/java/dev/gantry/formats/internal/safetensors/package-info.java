@NullMarked
package dev.gantry.formats.internal.safetensors;

import org.jspecify.annotations.NullMarked;
