#!/usr/bin/env node
// Here before anything is built, so that npm finds it to link in a checkout too.
import '../dist/cli/main.js'
