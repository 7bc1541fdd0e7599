// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.hub;

import dev.gantry.core.internal.cache.RemoteCache;
import dev.gantry.core.internal.http.HttpStore;
import dev.gantry.core.internal.natives.FileCalls;

/// The parts of a store that are made when the store is first used.
///
/// @param smallBytes the size up to which one request downloads a file as a whole
record HubParts(
    HubSettings settings,
    FileCalls calls,
    HttpStore http,
    HubClient client,
    HubCache cache,
    HubDisk disk,
    RemoteCache blocks,
    long smallBytes) {}
