// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.hub;

import dev.gantry.core.internal.cache.RemoteCache;
import dev.gantry.core.internal.http.HttpStore;
import dev.gantry.core.internal.natives.FileCalls;

/// The parts of a store that are made when it is first used.
///
/// @param smallBytes files up to this size come whole by one request
record HubParts(
    HubSettings settings,
    FileCalls calls,
    HttpStore http,
    HubClient client,
    HubCache cache,
    HubDisk disk,
    RemoteCache blocks,
    long smallBytes) {}
