// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import org.junit.jupiter.api.Tag;

/// Writes whose transport the transfer engine chooses.
@Tag("gpu")
class ChosenWriteGpuTest extends WriteContract {}
