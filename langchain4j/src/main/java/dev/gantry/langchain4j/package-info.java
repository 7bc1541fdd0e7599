// SPDX-License-Identifier: Apache-2.0
/// LangChain4j models from folders of the hub.
@NullMarked
package dev.gantry.langchain4j;

import org.jspecify.annotations.NullMarked;
