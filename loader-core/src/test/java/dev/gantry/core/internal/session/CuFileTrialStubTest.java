// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import org.junit.jupiter.api.Tag;

/// On the stub.
@Tag("gpu-stub")
class CuFileTrialStubTest extends CuFileTrialContract {}
