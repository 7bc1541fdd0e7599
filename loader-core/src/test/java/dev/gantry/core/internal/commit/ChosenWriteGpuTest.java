// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import org.junit.jupiter.api.Tag;

/// A write that chooses its transport by evidence.
@Tag("gpu")
class ChosenWriteGpuTest extends WriteContract {}
