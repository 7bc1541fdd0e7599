@NullMarked
package dev.gantry.formats.safetensors;

import org.jspecify.annotations.NullMarked;
