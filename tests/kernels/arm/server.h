/*
 * The native module's functions by message (server.cpp), for the programs that carry the messages.
 */
#ifndef IDENTIC_TESTS_SERVER_H
#define IDENTIC_TESTS_SERVER_H

#include <string>

/* Registers the functions; once, before anything is asked. */
void begin();

/* The answer to a request. */
std::string answered(const std::string& message);

/* The function that a request calls. */
std::string called(const std::string& message);

#endif
